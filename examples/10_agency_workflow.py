"""A complete workflow: file, codebook, search, choice, policy, report, release, and an audit of what was released."""

from pathlib import Path
from tempfile import TemporaryDirectory

import quadrille as qd
from quadrille import chart
from quadrille.report import write_report

POLICY = """
[policy]
name = "Household surveys"

[cells]
smallest = 3
exposed = {most = 0.005}

[swap]
methods = ["RandomSwap", "DesignedSwap"]
seeds = "secret"

[release]
shuffle = true

[measures]
hellinger = {most = 0.07}
"hellinger(2-way)" = {most = 0}
"""


def work(folder: Path) -> None:
    """Go the whole way in a folder."""
    # 1. The file as it comes, and a codebook that a person has checked.
    original = qd.datasets.cps8d()
    qd.write(original, folder / "people.csv")
    original.codebook.write(folder / "people.toml")
    data = qd.read(folder / "people.csv", codebook=folder / "people.toml")

    # 2. Candidates: random ones for comparison, designed ones.
    recipes = [
        qd.grid(qd.RandomSwap, swap=[["Edu"], ["MS"], ["Race"]], rate=[0.01, 0.05], seeds=2),
        qd.grid(qd.DesignedSwap, coin=[0.0, 0.5], effort=0.1, seeds=2),
    ]
    measures = ["exposed", "attributed_unique", "small_cells", "hellinger"]
    study = qd.search(data, recipes, measures, out=folder / "study", progress=False)

    # 3. The choice, with its reason.
    choice = study.pick(max_risk=0.001)
    print(choice.explain())

    # 4. The policy of the agency, line by line.
    (folder / "policy.toml").write_text(POLICY)
    verdict = qd.check_policy(data, choice.recipe, folder / "policy.toml")
    for line in verdict.lines:
        print(f"{line.verdict:7} {line.rule:22} {line.found}")

    # 5. The report for the board, and the release.
    write_report(study, data, folder / "report.html", candidate=choice.candidate)
    qd.release(data, choice.recipe, folder / "release", policy=folder / "policy.toml", publish_kept=True)

    # 6. The audit: read what the public gets, and score it as a stranger would.
    public = qd.read(folder / "release/public/data.csv", codebook=folder / "release/public/codebook.toml")
    scores = qd.score(data, public, ["exposed", "hellinger", "hellinger(2-way)"])
    print({name: round(value, 5) for name, value in scores.items()})
    picture = chart.distortion_heatmap(
        scores.detail("hellinger(2-way)")
        .unpivot(index="variable", variable_name="second")
        .rename({"variable": "first"}),
        measure="hellinger(2-way)",
    )
    chart.save(picture, folder / "changes.png")
    print(sorted(path.name for path in folder.iterdir()))


with TemporaryDirectory() as temporary:
    work(Path(temporary))
