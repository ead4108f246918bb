"""One program for each question about quality and speed; `python -m bench` runs them."""
