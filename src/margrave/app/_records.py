"""Outcomes, replies and certificates as plain data that JSON can hold."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from margrave.app._folder import FolderOutcome
from margrave.app._job import Outcome
from margrave.confusion import Confusion
from margrave.steer._certificate import Certificate
from margrave.steer._reply import Reply


def matrix_record(matrix: Confusion) -> dict[str, Any]:
    """Convert a confusion matrix: a row for each true class, the rejected column last."""
    return {
        "classes": list(matrix.classes),
        "positive": matrix.positive,
        "counts": matrix.counts.tolist(),
    }


def reply_record(reply: Reply) -> dict[str, Any]:
    """Convert a reply."""
    return {
        "preference": None if reply.preference is None else str(reply.preference),
        "met": reply.met,
        "shortfall": reply.shortfall,
        "binding": None if reply.binding is None else str(reply.binding),
        "strategy": reply.strategy,
        "seconds": round(reply.seconds, 3),
        "candidates": reply.n_candidates,
        "cancelled": reply.cancelled,
        "before": matrix_record(reply.before),
        "after": matrix_record(reply.after),
    }


def certificate_record(certificate: Certificate) -> dict[str, Any]:
    """Convert a certificate with its guarantees and cells."""
    return {
        "preference": certificate.preference,
        "requested": certificate.requested,
        "confidence": certificate.confidence,
        "delta": certificate.delta,
        "number": certificate.number,
        "route": certificate.route,
        "strategy": certificate.strategy,
        "guarantees": [asdict(guarantee) for guarantee in certificate.guarantees],
        "confusion": matrix_record(certificate.confusion),
        "cells": [asdict(cell) for cell in certificate.cells],
        "tuning": matrix_record(certificate.tuning),
        "issued": certificate.issued,
        "notes": list(certificate.remarks),
    }


def outcome_record(outcome: Outcome | FolderOutcome) -> dict[str, Any]:
    """Convert the outcome of a request."""
    model = outcome.model
    certificate = None if model is None else model.certificate_
    parts = outcome.parts
    return {
        "exit_code": outcome.exit_code,
        "met": outcome.met,
        "certified": certificate is not None,
        "verdict": outcome.describe(),
        "refusal": outcome.refusal or None,
        "data": outcome.samples.table.name,
        "target": outcome.samples.target,
        "classes": list(outcome.start.after.classes),
        "positive": outcome.start.after.positive,
        "n": {"all": outcome.n_rows, **asdict(parts)},
        "columns": dict(outcome.encoder.kinds_),
        "strategy": outcome.reply.strategy,
        "seconds": round(sum(reply.seconds for reply in outcome.replies), 3),
        "start": matrix_record(outcome.start.after),
        "replies": [reply_record(reply) for reply in outcome.replies],
        "certificate": None if certificate is None else certificate_record(certificate),
    }
