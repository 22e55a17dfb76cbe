#!/usr/bin/env python3
"""Trains the same model in PyTorch and compares with what takt-run did.

Independent of Takt: reads the model YAML, the initial weights (safetensors) and
the text, draws the batches by the documented formula (docs of data/source.h),
and runs plain PyTorch on the whole global batch at once.

Exit codes: 0 equal, 1 different, 77 PyTorch is not here.
"""
import argparse
import json
import math
import struct
import sys

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    import yaml
except ImportError as missing:
    print(f"SKIP: {missing} (Debian: python3-torch python3-numpy python3-yaml)")
    sys.exit(77)

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream_key(seed, name):
    h = 14695981039346656037
    for byte in name.encode():
        h = ((h ^ byte) * 1099511628211) & MASK
    return mix((seed + GOLDEN) & MASK) ^ h


def draw(key, index):
    return mix((key + (index + 1) * GOLDEN) & MASK)


def read_safetensors(path):
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    out = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        assert info["dtype"] == "F32", info
        begin, end = info["data_offsets"]
        array = np.frombuffer(body[begin:end], dtype="<f4")
        out[name] = torch.tensor(array.reshape(info["shape"]).copy())
    return out


def learning_rate(training, step):
    lr = float(training["optimizer"]["learning_rate"])
    schedule = training.get("learning_rate_schedule", {"kind": "constant"})
    warmup = int(schedule.get("warmup_steps", 0))
    if step < warmup:
        return lr * (step + 1) / warmup
    if schedule["kind"] == "constant":
        return lr
    low = float(schedule.get("minimum", 0))
    total = int(schedule["total_steps"])
    if step >= total:
        return low
    part = (step - warmup) / (total - warmup)
    if schedule["kind"] == "linear":
        return lr + (low - lr) * part
    return low + (lr - low) * 0.5 * (1 + math.cos(math.pi * part))


class Model:
    """Interprets the layers of the YAML file with PyTorch functions."""

    def __init__(self, spec, params):
        self.spec, self.params = spec, params

    def run(self, inputs):
        inputs = dict(inputs)  # and every layer's output by name
        x = None
        for item in self.spec["layers"]:
            x = self.item(item, x, inputs, "")
        return x

    def item(self, item, x, inputs, scope):
        (kind, body), = item.items()
        if kind == "repeat":
            for i in range(int(body["count"])):
                for inner in body["layers"]:
                    x = self.item(inner, x, inputs, f"{scope}{body['name']}.{i}.")
            return x
        if kind == "residual":
            branch = x
            inner_scope = scope + (body["name"] + "." if "name" in body else "")
            for inner in body["layers"]:
                branch = self.item(inner, branch, inputs, inner_scope)
            if "name" in body:
                inputs[inner_scope + "add"] = x + branch
            return x + branch
        if "input" in body:
            x = inputs[body["input"]]
        x = self.layer(kind, body, x, inputs, scope)
        if "name" in body:
            inputs[scope + body["name"]] = x
        return x

    def layer(self, kind, body, x, inputs, scope):
        name = scope + body.get("name", "")
        p = self.params
        if kind == "embedding":
            return p[name + ".weight"][x]
        if kind == "positional_embedding":
            return x + p[name + ".weight"]
        if kind == "linear":
            owner = body["tied"] if "tied" in body else name
            return F.linear(x, p[owner + ".weight"], p.get(name + ".bias"))
        if kind == "layer_norm":
            w = p[name + ".weight"]
            return F.layer_norm(x, w.shape, w, p[name + ".bias"],
                                float(body.get("epsilon", 1e-5)))
        if kind == "rms_norm":
            root = (x * x).mean(-1, keepdim=True) + float(
                body.get("epsilon", 1e-5))
            return p[name + ".weight"] * x * torch.rsqrt(root)
        if kind == "gated_mlp":
            return self.gated_mlp(name, body, x)
        if kind == "gelu_tanh":
            return F.gelu(x, approximate="tanh")
        if kind == "gelu":
            return F.gelu(x)
        if kind == "relu":
            return F.relu(x)
        if kind == "add":
            a, b = (inputs[value] for value in body["inputs"])
            return a + b
        if kind == "attention":
            return self.attention(name, body, x)
        if kind == "cross_entropy":
            target = inputs[body["target"]]
            return F.cross_entropy(x.reshape(-1, x.shape[-1]), target.reshape(-1))
        raise SystemExit(f"the reference does not know the layer '{kind}'")

    def gated_mlp(self, name, body, x):
        p = self.params
        gate, up = F.linear(x, p[name + ".in.weight"],
                            p.get(name + ".in.bias")).chunk(2, dim=-1)
        kind = body.get("activation", "silu")
        gate = (F.silu(gate) if kind == "silu" else F.gelu(gate)
                if kind == "gelu" else F.gelu(gate, approximate="tanh"))
        return F.linear(gate * up, p[name + ".out.weight"],
                        p.get(name + ".out.bias"))

    def attention(self, name, body, x):
        p = self.params
        batch, length, width = x.shape
        heads = int(body["heads"])
        shared = int(body.get("kv_heads", heads))
        size = int(body.get("head_dim", width // heads))
        qkv = F.linear(x, p[name + ".qkv.weight"], p.get(name + ".qkv.bias"))
        q, k, v = (t.reshape(batch, length, -1, size).transpose(1, 2)
                   for t in qkv.split([heads * size, shared * size,
                                       shared * size], dim=-1))
        if "rope_theta" in body:
            q, k = (rotate(t, float(body["rope_theta"])) for t in (q, k))
        k, v = (t.repeat_interleave(heads // shared, dim=1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(size)
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        out = scores.masked_fill(mask, -math.inf).softmax(-1) @ v
        out = out.transpose(1, 2).reshape(batch, length, heads * size)
        return F.linear(out, p[name + ".proj.weight"],
                        p.get(name + ".proj.bias"))


def rotate(x, theta):
    """Complex rotation: element j is the real part, j + size / 2 the other."""
    length, size = x.shape[-2:]
    rates = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
    turned = torch.complex(*x.double().chunk(2, dim=-1)) * torch.polar(
        torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], dim=-1).to(x.dtype)


def text_batch(text, seed, step, batch, length):
    key = stream_key(seed, "text")
    rows = []
    for g in range(step * batch, (step + 1) * batch):
        offset = draw(key, g) % (len(text) - length)
        rows.append(np.frombuffer(text[offset:offset + length + 1], np.uint8))
    ids = torch.tensor(np.stack(rows).astype(np.int64))
    return {"tokens": ids[:, :-1], "targets": ids[:, 1:]}


def main():
    parser = argparse.ArgumentParser()
    for option in ("model", "weights", "data", "losses", "gradients"):
        parser.add_argument("--" + option, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)

    document = yaml.safe_load(open(args.model))
    training = document["training"]
    params = {name: tensor.requires_grad_()
              for name, tensor in read_safetensors(args.weights).items()}
    model = Model(document["model"], params)
    text = open(args.data, "rb").read()
    length = int(document["model"]["inputs"]["tokens"]["shape"][0])
    optimizer = torch.optim.AdamW(
        params.values(),
        betas=tuple(float(b) for b in training["optimizer"]["betas"]),
        eps=float(training["optimizer"]["epsilon"]),
        weight_decay=float(training["optimizer"]["weight_decay"]))

    theirs = [float(line.split()[0]) for line in open(args.losses)]
    grads = read_safetensors(args.gradients)
    worst, failed = 0.0, False
    for step, other in enumerate(theirs):
        inputs = text_batch(text, int(training.get("seed", 0)), step,
                            int(training["global_batch"]), length)
        loss = model.run(inputs)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            failed |= compare_gradients(params, grads)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(training, step)
        optimizer.step()
        error = abs(other - loss.item()) / abs(loss.item())
        worst = max(worst, error)
        if error > 1e-4:
            print(f"step {step}: loss {other}, PyTorch has {loss.item()}")
            failed = True
    print(f"losses of {len(theirs)} steps: largest relative difference {worst:.3g}")
    sys.exit(1 if failed else 0)


def compare_gradients(params, grads):
    whole = math.sqrt(sum(float(p.grad.double().norm()) ** 2
                          for p in params.values()))
    if set(grads) != set(params):
        print("gradients and parameters have different names:",
              sorted(set(grads) ^ set(params)))
        return True
    worst, failed = 0.0, False
    for name, p in params.items():
        difference = float((grads[name].double() - p.grad.double()).norm())
        relative = difference / max(float(p.grad.double().norm()), 1e-300)
        if relative > 1e-4 and difference > 1e-6 * whole:
            print(f"gradient of '{name}': relative difference {relative:.3g}")
            failed = True
        if float(p.grad.double().norm()) > 1e-6 * whole:
            worst = max(worst, relative)
    print(f"gradients of step 1: {len(params)} tensors, largest relative "
          f"difference {worst:.3g}")
    return failed


if __name__ == "__main__":
    main()
