"""How an exercise is checked: drawn, run apart, compared, told in a sentence, kept."""
