"""Scaling: the cost model, the page and the benchmark, on small sizes."""

import re
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

from experiments.scale import figures, folders, gpu, measuring, page
from experiments.scale.__main__ import main
from experiments.scale.measuring import Measured
from experiments.scale.model import Cost, fit_cost, worst_error

from benchmarks import scale as benchmark

TRUE = Cost(start=0.02, dispatch=0.001, opening=0.003, per_row=2e-7)
JOBS = ("rank margin, ν = 0", "average margin, linear")


def measure(job, rows, blocks, workers, passes=1):
    seconds = passes * TRUE.seconds(rows if job != "nothing" else 0, blocks, workers)
    return Measured(job, rows, blocks, workers, passes, seconds)


@pytest.fixture(scope="module")
def measurements():
    nothing = [measure("nothing", n, n, w) for w in (1, 2) for n in (100, 1_000, 4_000)]
    work = [
        measure(job, n, n // 10**5, w, 5) for job in JOBS for w in (1, 2) for n in (10**6, 10**8)
    ]
    exact = [Measured("average margin, exact kernel", n, 1, 0, 1, n**2 / 1e8) for n in (100, 1_000)]
    return [*nothing, *work, *exact]


def test_the_fitted_model_has_the_true_parameters(measurements):
    cost = fit_cost(page.by_job(measurements, "nothing"), page.by_job(measurements, JOBS[0]))
    assert np.allclose(
        [cost.start, cost.dispatch, cost.opening, cost.per_row],
        [TRUE.start, TRUE.dispatch, TRUE.opening, TRUE.per_row],
        rtol=1e-6,
    )
    assert worst_error(cost, page.by_job(measurements, JOBS[0])) == pytest.approx(1)


def test_more_workers_end_at_the_scheduler():
    rows, most = 1e10, 1e6
    seconds = [TRUE.least(rows, workers, most)[0] for workers in (1, 10, 100, 1_000)]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] > 1e4 * TRUE.dispatch
    assert TRUE.least(rows, 1e5, most)[1] == 1e5  # never fewer blocks than workers


def test_the_busiest_worker_decides():
    assert TRUE.seconds(1e6, 1, 2) == TRUE.seconds(1e6, 1, 1)
    three = TRUE.seconds(3e6, 3, 2) - TRUE.start - 3 * TRUE.dispatch
    assert three == pytest.approx(2 * TRUE.opening + 2e6 * TRUE.per_row)


def test_a_model_that_does_not_fit_is_no_page(measurements, tmp_path):
    off = [
        replace(one, seconds=one.seconds * (9 if one.rows == 10**6 else 1)) for one in measurements
    ]
    with pytest.raises(ValueError, match=re.escape(repr(JOBS[0]))):
        page.write(off, tmp_path, "make it")


def test_an_error_is_a_factor():
    one = Measured("job", 100, 1, 1, 1, 2 * TRUE.seconds(100, 1, 1))
    assert worst_error(TRUE, [one]) == pytest.approx(2)


def test_the_page_shows_the_measurements(measurements, tmp_path):
    text = page.write(measurements, tmp_path, "make it").read_text()
    assert "$" not in text
    assert f"| {JOBS[0]} | 1,000,000 | 5 | " in text
    assert "20 ms" in text
    assert "1.00 ms" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "scale.md",
        "scale_growth.png",
        "scale_kernels.png",
        "scale_machines.png",
    }
    for named in re.findall(r"\]\((scale_\w+\.png)\)", text):
        assert (tmp_path / named).stat().st_size > 5_000


def test_only_measured_numbers_of_workers_have_solid_lines(measurements, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "save_figure", lambda figure, path: drawn.append(figure))
    figures.machines(measurements, page.fit_costs(measurements), tmp_path / "machines.png")
    measured, extrapolated = drawn[0].axes
    workers = {"-": [], "--": []}
    for line in measured.lines:
        if line.get_linestyle() in workers:
            workers[line.get_linestyle()] += list(line.get_xdata())
    assert set(workers["-"]) == {1, 2}
    assert min(workers["--"]) == 2
    assert {line.get_linestyle() for line in extrapolated.lines} == {"--"}
    plt.close(drawn[0])


def test_the_recorded_gpu_meets_its_targets():
    for row in gpu.recorded()["rows"]:
        if row["target"] is not None:
            better, worse = (row["value"], row["target"])[:: 1 if row["at_least"] else -1]
            assert better >= worse, row["what"]
    for curve in gpu.measured().curves.values():
        seconds = [value for _, value in curve]
        assert len(curve) >= 2
        assert seconds == sorted(seconds)


def test_a_quick_run_needs_a_place(capsys):
    assert main(["--quick"]) == 2
    assert "--out" in capsys.readouterr().err


def test_folders_are_made_once_and_hold_what_they_say(tmp_path):
    folder = folders.scores_folder(tmp_path, 500)
    made = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert folders.scores_folder(tmp_path, 500) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == made
    table = benchmark.read_parquet(folder).compute()
    assert table.shape == (500, 1 + folders.MEMBERS)
    assert table[folders.names(folders.MEMBERS)].abs().to_numpy().max() <= 1
    assert 0.2 < table["y"].mean() < 0.5


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own reader, with pandas 3.1
def test_every_comparison_is_made(tmp_path):
    """Without a cluster, and at a size where times mean nothing: answers and passes do."""
    scores, columns = folders.scores_folder(tmp_path, 600), folders.columns_folder(tmp_path, 300)
    found = [
        *benchmark.rank_margin(scores, 600),
        *benchmark.same_optimum(scores, 600),
        *benchmark.average_margin(columns, 300),
    ]
    met = {one.what: one.met for one in found}
    assert len(found) == 7
    assert all(yes for what, yes in met.items() if "passes" in what or "apart" in what)


def test_passes_and_blocks_are_counted(tmp_path):
    folder = folders.columns_folder(tmp_path, 200)
    one = measuring._timed("linear", 200, 1, lambda: measuring._linear(folder))
    assert (one.passes, one.blocks, one.workers) == (1, 1, 1)
    assert one.each == one.seconds > 0
