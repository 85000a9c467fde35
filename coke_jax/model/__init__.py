"""The CoKE encoder and its loss: arrays in, arrays out."""
