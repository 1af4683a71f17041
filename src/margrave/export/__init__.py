"""Export of steered models to ONNX."""

from margrave.export._graph import ExportError
from margrave.export._onnx import can_export, onnx_inputs, to_onnx

__all__ = ["ExportError", "can_export", "onnx_inputs", "to_onnx"]
