// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 by products of warp groups. False, and nothing is queued: the GPU is not of compute
// capability 9.0, the program has no code for it, or heads are neither 64 nor 128 deep.
#pragma once

#include "kernels/attention.hpp"

namespace assay::kernels::cuda {

bool hopper_attention_forward(const AttentionShape& shape, const Bfloat* qkv, Bfloat* out, float* lse,
                              void* stream);
bool hopper_attention_backward(const AttentionShape& shape, const Bfloat* qkv, const float* lse,
                               const float* delta, const Bfloat* dout, Bfloat* dqkv, void* scores,
                               void* stream);

}  // namespace assay::kernels::cuda
