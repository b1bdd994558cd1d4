"""Which of 2,000 invoices to check, if a check costs 20 and a missed mistake costs 200."""

import numpy as np
import pandas as pd

from gammagmm import GammaGMM

# The data: a seeded generator, in which 40 invoices have a mistake.
rng = np.random.default_rng(0)
n = 2000
quantity = rng.integers(1, 60, n)
price = rng.lognormal(3, 0.6, n).round(2)
invoices = pd.DataFrame(
    {
        "invoice_no": np.arange(50_001, 50_001 + n),
        "vendor": rng.choice(["Adler", "Bosco", "Cohen", "Duval"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "quantity": quantity,
        "unit_price": price,
        "amount": (quantity * price).round(2),
        "days_to_due": rng.choice([14, 30, 60], n, p=[0.2, 0.7, 0.1]),
    }
)
wrong = rng.choice(n, 40, replace=False)
invoices.loc[wrong[:15], "amount"] *= 10  # a shifted decimal point
invoices.loc[wrong[15:30], "quantity"] *= 12  # boxes that are counted as pieces
invoices.loc[wrong[30:], "days_to_due"] = 3  # a forged term of payment
invoices["price_check"] = invoices["amount"] / invoices["quantity"] / invoices["unit_price"]
truth = np.isin(np.arange(n), wrong).astype(int)

# A person looks at 30 invoices that are chosen evenly, and then at the most unusual ones. Ten
# checks cost as much as one missed mistake, so the search ends with ten that have none.
model = GammaGMM("fast", columns={"id": "invoice_no"}, random_state=0).fit(invoices)
rows = model.suggest(30, random_state=0)
model.update(rows, truth[rows])
while truth[rows].any() or len(rows) == 30:
    rows = model.suggest(10, purpose="find")
    model.update(rows, truth[rows], purpose="find")

# The decision.
known = model.known_rows_
checks, found = len(known.rows), int(known.labels.sum())
print(f"{found} of 40 mistakes found with {checks} checks")
print(f"costs {20 * checks + 200 * (40 - found)}; without checks {200 * 40}")
print(f"the share of all invoices with a mistake: {model.posterior_}")
for row in known.rows[known.labels == 1][:3]:
    print(invoices["invoice_no"].iloc[row], model.reasons()[row])
