"""How the weights that stampcache ships are made; nothing here is needed to use it."""
