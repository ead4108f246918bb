"""`python -m hermes_pgsql` is the same as the command `hermes-pgsql`."""

from hermes_pgsql.cli import main

if __name__ == "__main__":
    main()
