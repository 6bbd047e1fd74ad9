"""What keeps the course together: set-up, ledger of claims, recorded results, files."""
