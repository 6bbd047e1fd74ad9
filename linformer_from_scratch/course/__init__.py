"""What keeps the course together.

start_here: is this machine ready. ledger, claims.yml: claims and verdicts. glossary: terms of the chapters.
decision, decision.yml: which attention for which case. listing, elsewhere: what notebooks need.
"""
