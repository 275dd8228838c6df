"""The PCM, the network from thresholds to designs: its training on surrogates and its distillation from solved thresholds."""
