#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The model of suites/train in PyTorch, on the CPU in fp32; prints the median tokens per second of its steps.

  peer_gpt.py WIDTH LAYERS HEADS VOCABULARY LENGTH BATCH STEPS

Same shapes, block, loss and optimizer; tokens are drawn ahead of time and not counted. OMP_NUM_THREADS and the
variables of its BLAS give it threads.
"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

width, layers, heads, vocabulary, length, batch, steps = map(int, sys.argv[1:8])
torch.manual_seed(1)
depth = width // heads


def weight(rows, columns, scale):
    return torch.nn.Parameter((torch.rand(rows, columns) * 2 - 1) * scale)


inner = (3 / width) ** 0.5
embedding, head = weight(vocabulary, width, 1.0), weight(width, vocabulary, 0.1 * inner)
blocks = [(weight(width, 3 * width, inner), weight(width, width, 0.0), weight(width, 4 * width, inner),
           weight(4 * width, width, 0.0)) for _ in range(layers)]
optimizer = torch.optim.AdamW([embedding, head] + [w for b in blocks for w in b], lr=1e-3, betas=(0.9, 0.95),
                              eps=1e-8, weight_decay=0.0)
angle = torch.arange(length)[:, None] * 10000.0 ** (-2.0 * torch.arange(depth // 2) / depth)[None, :]
cosine, sine = angle.cos()[None, :, None, :], angle.sin()[None, :, None, :]
mask = torch.full((length, length), float("-inf")).triu(1)


def norm(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


def turn(x):
    a, b = x[..., :depth // 2], x[..., depth // 2:]
    return torch.cat((a * cosine - b * sine, a * sine + b * cosine), -1)


def loss_of(tokens, targets):
    x = embedding[tokens]
    for qkv, output, up, down in blocks:
        q, k, v = (norm(x) @ qkv).split(width, -1)
        q, k = (turn(t.view(batch, length, heads, depth)).transpose(1, 2) for t in (q, k))
        v = v.view(batch, length, heads, depth).transpose(1, 2)
        weights = torch.softmax(q @ k.transpose(-2, -1) / depth ** 0.5 + mask, -1)
        x = x + (weights @ v).transpose(1, 2).reshape(batch, length, width) @ output
        x = x + F.relu(norm(x) @ up).square() @ down
    return F.cross_entropy((norm(x) @ head).view(-1, vocabulary), targets.view(-1))


data = torch.randint(0, vocabulary, (steps + 2, 2, batch, length))
times = []
for tokens, targets in data:
    begin = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss_of(tokens, targets).backward()
    optimizer.step()
    times.append(time.perf_counter() - begin)
print(batch * length / statistics.median(times[2:]))
