"""What did not come from here, held against what did: traces of kernels, other simulators, printed predictions."""
