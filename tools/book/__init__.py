"""The book: the course's notebooks, solutions, ledger, glossary, decks and API as pages for a browser."""
