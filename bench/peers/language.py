"""The other side of cli/weights's TestTransformers.

usage: language.py FOLDER TOKENS

FOLDER has folders that fspda export --format hf wrote. transformers loads each and prints the logits of the token after TOKENS, in float32, as JSON.
"""

import json
import os
import sys

import torch
from transformers import AutoModelForCausalLM

folder, tokens = sys.argv[1], [int(t) for t in sys.argv[2].split(",")]
torch.set_num_threads(1)
logits = {}
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    if os.path.exists(os.path.join(path, "config.json")):
        model = AutoModelForCausalLM.from_pretrained(path).float().eval()
        with torch.no_grad():
            logits[name] = model(torch.tensor([tokens])).logits[0, -1].tolist()
print(json.dumps(logits))
