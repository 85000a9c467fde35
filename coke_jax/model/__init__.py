"""The CoKE encoder and its loss: functions of arrays, without files."""
