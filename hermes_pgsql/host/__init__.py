"""What the host's installation and settings need: the discovery shim, the setup wizard, the home's files."""
