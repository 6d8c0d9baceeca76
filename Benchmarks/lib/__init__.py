"""What the benchmarks share. Each script beside this folder is one benchmark; `--help` of each has examples."""
