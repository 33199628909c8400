"""Many runs of one function: `ti.sweep` and `ti.ensemble`, on this machine's cores or on a Dask cluster."""
