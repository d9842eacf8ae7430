"""A census of households: those who are rare where they live exchange their places with households like them."""

import quadrille as qd

island = qd.datasets.island()  # yours: qd.read("census.parquet").with_roles(unit="household", geography=[...])
risk = ["age", "birth"]

found = qd.inspect(island, risk=risk, k=3).risk
print("At risk, by level of geography, before any draw:")
for level in found.levels:
    print(f"{level.level:9} {level.units:4,} households, {level.share:.1%} so far".replace("%", " %"))

measures = ["linked_small(ward*age*birth)", "hellinger(parish*status)"]
for near in ("any", "parent"):
    recipe = qd.TargetedSwap(risk, k=3, similar=[["hh_size", "hh_type"], ["hh_size"]], near=near, seed=1)
    plan = recipe.plan(island)
    scores = qd.score(island, plan, measures)
    in_place = sum(row["in_place"] for row in plan.report(island).details["at_risk"])
    print(
        f"{near:7} {len(plan.units)} households moved, {in_place} at risk left in place; found by ward, age and birth: "
        f"{scores[measures[0]]:.2f}; loss in parishes {scores[measures[1]]:.3f}"
    )

before, after = (data.frame()["ward"].value_counts().sort("ward") for data in (island, plan.apply(island)))
print("persons per ward as before:", before.equals(after))
print(qd.area_flows(island, plan, "district").head(4))
