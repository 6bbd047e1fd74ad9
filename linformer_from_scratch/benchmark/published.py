"""Figures as they were published, to stand beside measured ones."""

from math import nan

# Wang et al. 2020, arXiv 2006.04768, table 3: time saved and memory saved (largest batch) by n and k;
# one 16 GB V100, random data, inference, against the Transformer of that time, which stores its maps.
TABLE_3 = {
    512: {128: (1.5, 1.7), 256: (1.3, 1.5)},
    1024: {128: (1.7, 3.0), 256: (1.6, 2.9), 512: (1.3, 1.8)},
    2048: {128: (2.6, 6.1), 256: (2.4, 5.6), 512: (2.1, 3.6), 1024: (1.3, 2.0)},
    4096: {128: (3.4, 14), 256: (3.2, 13), 512: (2.8, 8.3), 1024: (2.2, 4.3), 2048: (1.3, 2.3)},
    8192: {128: (5.5, 28), 256: (5.0, 26), 512: (4.4, 17), 1024: (3.5, 8.5), 2048: (2.1, 4.5)},
    16384: {128: (8.6, 56), 256: (7.8, 48), 512: (7.0, 32), 1024: (5.6, 16), 2048: (3.3, 8)},
    32768: {128: (13, 56), 256: (12, 48), 512: (11, 36), 1024: (8.8, 18), 2048: (5.0, 16)},
    65536: {128: (20, 60), 256: (18, 52), 512: (16, 40), 1024: (14, 20), 2048: (7.9, 18)},
}

# Dao et al. 2022, arXiv 2205.14135, appendix E: A100 with 40 GB, 16 texts, 8 heads of 64 features, float16,
# k = min(n / 8, 256), projections of features left out; nan where memory was not enough.
FLASH_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536)
FLASH_FORWARD_MS = {
    "PyTorch": (0.43, 1.27, 4.32, 16.47, 67.77, nan, nan, nan),
    "Linformer": (0.45, 0.50, 1.09, 2.09, 4.01, 7.90, 15.70, 35.40),
    "FlashAttention": (0.18, 0.68, 2.40, 8.42, 33.54, 134.0, 536, 2147),
}
FLASH_MB = {
    "PyTorch": (336, 1184, 4416, 17024, nan, nan, nan, nan),
    "Linformer": (114, 287, 832, 1652, 3292, 6572, 13132, 26252),
    "FlashAttention": (104, 209, 418, 836, 1672, 3344, 6688, 13376),
}

# Tay et al. 2020 (Long Range Arena), arXiv 2011.04006, table 1: accuracy in per cent on five tasks of 1,000
# to 4,000 tokens, given without spread; on a sixth, Path-X, all failed. The means are as published.
# LRA_IMAGE_TRAINED: of Image's training pictures. LRA_SLOTS: Linformer's k in their public code, where a
# configured 32 is never read; nor are padding masks.
LRA_TASKS = ("ListOps", "Text", "Retrieval", "Image", "Pathfinder")
LRA_WITH_MEANS = {
    "Transformer": (36.37, 64.27, 57.46, 42.44, 71.40, 54.39),
    "Local": (15.82, 52.98, 53.39, 41.46, 66.63, 46.06),
    "Sparse": (17.07, 63.58, 59.59, 44.24, 71.71, 51.24),
    "Longformer": (35.63, 62.85, 56.89, 42.22, 69.71, 53.46),
    "Linformer": (35.70, 53.94, 52.27, 38.56, 76.34, 51.36),
    "Reformer": (37.27, 56.10, 53.40, 38.07, 68.50, 50.67),
    "Sinkhorn": (33.67, 61.20, 53.83, 41.23, 67.45, 51.29),
    "Synthesizer": (36.99, 61.68, 54.67, 41.61, 69.45, 52.88),
    "BigBird": (36.05, 64.02, 59.29, 40.83, 74.87, 55.01),
    "Linear": (16.13, 65.90, 53.09, 42.34, 75.30, 50.55),
    "Performer": (18.01, 65.40, 53.82, 42.77, 77.05, 51.41),
}
LRA = {name: row[:-1] for name, row in LRA_WITH_MEANS.items()}
LRA_MEANS = {name: row[-1] for name, row in LRA_WITH_MEANS.items()}
LRA_IMAGE_TRAINED = {"Transformer": 69.5, "Linformer": 97.0}
LRA_SLOTS = 16

# The same tasks in later papers: Xiong et al. 2021, arXiv 2102.03902; Dao et al. 2022, arXiv 2205.14135 (the
# mean only).
LRA_XIONG = {
    "Transformer": (37.10, 65.02, 79.35, 38.20, 74.16),
    "Linformer": (37.25, 55.91, 79.37, 37.84, 67.60),
}
LRA_DAO_MEANS = {"Transformer": 59.3, "Linformer": 54.9}
