"""The numbers that the paper prints (Wang et al. 2019, arXiv:1911.02168)."""

LINK_PREDICTION_METRICS = ('mrr', 'hits@1', 'hits@3', 'hits@10')
PATH_METRICS = ('mean_quantile', 'hits@10')

# Tables "Link prediction results": the rows of CoKE.
LINK_PREDICTION = {
  'FB15k': (0.855, 0.826, 0.872, 0.906),
  'WN18': (0.952, 0.947, 0.955, 0.960),
  'FB15k-237': (0.364, 0.272, 0.400, 0.549),
  'WN18RR': (0.484, 0.450, 0.496, 0.553),
}

# Table "Parameter efficiency": millions of parameters, MRR, hits@1.
PARAMETERS = {
  'FB15k': {
    'RotatE': (31.25, 0.797, 0.746),
    'TuckER': (11.26, 0.795, 0.741),
    'CoKE': (10.58, 0.855, 0.826),
  },
  'FB15k-237': {
    'RotatE': (29.32, 0.338, 0.241),
    'TuckER': (10.96, 0.358, 0.266),
    'CoKE': (10.19, 0.364, 0.272),
  },
  'WN18': {
    'RotatE': (40.95, 0.949, 0.944),
    'TuckER': (9.39, 0.953, 0.949),
    'CoKE': (16.92, 0.952, 0.947),
  },
  'WN18RR': {
    'RotatE': (40.95, 0.476, 0.428),
    'TuckER': (9.39, 0.470, 0.443),
    'CoKE': (16.92, 0.484, 0.450),
  },
}

# Table "Path query answering results". Each key is the maximum number of
# relations in a training path.
PATH_QUERIES = {
  'PathQueryWN': {
    1: (0.735, 0.167),
    2: (0.908, 0.495),
    3: (0.926, 0.596),
    4: (0.936, 0.655),
    5: (0.942, 0.679),
  },
  'PathQueryFB': {
    1: (0.727, 0.373),
    2: (0.894, 0.595),
    3: (0.906, 0.646),
    4: (0.931, 0.712),
    5: (0.950, 0.777),
  },
}
