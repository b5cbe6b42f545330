#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The model of suites/train in PyTorch on one GPU, compiled; prints tokens per second and the fraction of a GEMM's rate.

  train_torch.py [--preset small|slice-7b] [--layers N] [--batch N] [--steps N]

Same shapes, block, loss and optimizer as the presets of the cuda device: fp32 master parameters, bf16 activations and
products (autocast), the library's fused causal attention, fused AdamW. --layers and --batch as assay's plan says them.
"""
import argparse
import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("train_torch.py: PyTorch is not installed")

PRESETS = {  # width, layers, heads, vocabulary, length, batch
    "small": (768, 12, 12, 25600, 1024, 16),
    "slice-7b": (4096, 8, 32, 32768, 2048, 4),
}


class Model(torch.nn.Module):
    def __init__(self, width, layers, heads, vocabulary, length):
        super().__init__()
        self.heads, self.depth, inner = heads, width // heads, (3 / width) ** 0.5

        def weight(rows, columns, scale):
            return torch.nn.Parameter((torch.rand(rows, columns) * 2 - 1) * scale)

        self.embedding, self.head = weight(vocabulary, width, 1.0), weight(width, vocabulary, 0.1 * inner)
        self.blocks = torch.nn.ModuleList(
            torch.nn.ParameterDict({"qkv": weight(width, 3 * width, inner), "output": weight(width, width, 0.0),
                                    "up": weight(width, 4 * width, inner), "down": weight(4 * width, width, 0.0)})
            for _ in range(layers))
        angle = torch.arange(length)[:, None] * 10000.0 ** (-2.0 * torch.arange(self.depth // 2) / self.depth)[None, :]
        self.register_buffer("cosine", angle.cos()[None, None])
        self.register_buffer("sine", angle.sin()[None, None])

    def turn(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cosine - b * self.sine, a * self.sine + b * self.cosine), -1).to(x.dtype)

    def forward(self, tokens, targets):
        batch, length = tokens.shape

        def norm(x):
            return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).to(torch.bfloat16)

        x = F.embedding(tokens, self.embedding).to(torch.bfloat16)
        for block in self.blocks:
            q, k, v = ((norm(x) @ block["qkv"]).view(batch, length, 3, self.heads, self.depth).permute(2, 0, 3, 1, 4))
            mixed = F.scaled_dot_product_attention(self.turn(q), self.turn(k), v, is_causal=True)
            x = x + mixed.transpose(1, 2).reshape(batch, length, -1) @ block["output"]
            x = x + F.relu(norm(x) @ block["up"]).square() @ block["down"]
        logits = norm(x) @ self.head
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def seconds_of(work, count):
    times = []
    for _ in range(count):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e-3 * begin.elapsed_time(end))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--steps", type=int, default=30)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("train_torch.py: no GPU")
    width, layers, heads, vocabulary, length, batch = PRESETS[options.preset]
    layers, batch = options.layers or layers, options.batch or batch
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = Model(width, layers, heads, vocabulary, length).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0, fused=True)
    compiled = torch.compile(model)
    tokens, targets = torch.randint(0, vocabulary, (2, batch, length), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = compiled(tokens, targets)
        loss.backward()
        optimizer.step()

    seconds_of(step, 10)  # compiles
    median = statistics.median(seconds_of(step, options.steps))
    multiplied = 12 * width * width * layers + width * vocabulary
    flops = (6 * multiplied + 6 * layers * width * length) * batch * length
    n = min(8192, 4 * width)
    a, b = torch.rand(2, n, n, device="cuda", dtype=torch.bfloat16) * 2 - 1
    rate = 2 * n**3 / min(seconds_of(lambda: a @ b, 20)[5:])
    print(f"{options.preset}: {batch * length / median:.0f} token/s, {flops / median / 1e12:.1f} TFLOP/s, "
          f"{flops / median / rate:.3f} of a GEMM's {rate / 1e12:.1f} TFLOP/s ({torch.cuda.get_device_name()}, "
          f"PyTorch {torch.__version__}, {layers} layers)")


if __name__ == "__main__":
    main()
