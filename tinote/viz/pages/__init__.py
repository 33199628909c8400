"""Live views as pages that run from the disk: no kernel, no server, no network."""
