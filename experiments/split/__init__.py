"""How many samples a guarantee should set aside, and what it then costs."""
