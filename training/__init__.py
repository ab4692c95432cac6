"""How the three built-in models were made; README.md here says how to make them again."""
