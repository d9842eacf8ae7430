"""A weighted survey: targets, partners of similar weight, and which published estimates change."""

import quadrille as qd

data = qd.datasets.adult()  # with its survey weight fnlwgt
recipe = qd.ControlledSwap(["race", "education"], targets=0.03, boundary=["sex"], seed=1)
plan = recipe.plan(data)
account = plan.report(data)
print(f"{account.pairs:,} pairs, {account.records:,} of {data.n:,} records")

for measure, value in qd.score(data, plan, ["r_ased", "c_ard", "hd1_norm"]).items():
    print(f"{measure:10} {value:.4f}")

found = qd.before_after(data, plan)
print(f"{found.flags().height} of {len(found.estimates)} estimates are flagged:")
print(found.flags().select("variable", "category", "before", "after", "se_ratio"))
