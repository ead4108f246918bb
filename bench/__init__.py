"""One program for each question about speed; `python -m bench` lists and runs them."""
