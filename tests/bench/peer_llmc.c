// SPDX-License-Identifier: Apache-2.0
// Drives llm.c's CPU trainer, which is fetched by whoever compares (--llmc DIR) and is no part of this project, with the
// shapes of suites/train. training.py copies its train_gpt2.c to llmc.c with the two matrix products renamed; here they go
// to the BLAS that assay uses. Prints the median tokens per second of its steps.
//   peer_llmc WIDTH LAYERS HEADS VOCABULARY LENGTH BATCH STEPS
#define _GNU_SOURCE
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TESTING
void matmul_forward(float* out, const float* inp, const float* weight, const float* bias, int B, int T, int C, int OC);
void matmul_backward(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp, const float* weight,
                     int B, int T, int C, int OC);
#include "llmc.c"

// out[BT, OC] = inp[BT, C] weight[OC, C]^T + bias
void matmul_forward(float* out, const float* inp, const float* weight, const float* bias, int B, int T, int C, int OC) {
  const int rows = B * T;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows, OC, C, 1.0f, inp, C, weight, C, 0.0f, out, OC);
  if (bias == NULL) return;
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < OC; ++o) out[(size_t)r * OC + o] += bias[o];
}

void matmul_backward(float* dinp, float* dweight, float* dbias, const float* dout, const float* inp, const float* weight,
                     int B, int T, int C, int OC) {
  const int rows = B * T;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, C, OC, 1.0f, dout, OC, weight, C, 1.0f, dinp, C);
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, OC, C, rows, 1.0f, dout, OC, inp, C, 1.0f, dweight, C);
  if (dbias == NULL) return;
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < OC; ++o) dbias[o] += dout[(size_t)r * OC + o];
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int count, char** words) {
  if (count != 8) return 4;
  GPT2 model = {0};
  model.config.channels = atoi(words[1]);
  model.config.num_layers = atoi(words[2]);
  model.config.num_heads = atoi(words[3]);
  model.config.vocab_size = model.config.padded_vocab_size = atoi(words[4]);
  const int length = model.config.max_seq_len = atoi(words[5]);
  const int batch = atoi(words[6]), steps = atoi(words[7]);
  fill_in_parameter_sizes(model.param_sizes, model.config);
  for (int i = 0; i < NUM_PARAMETER_TENSORS; ++i) model.num_parameters += model.param_sizes[i];
  model.params_memory = malloc_and_point_parameters(&model.params, model.param_sizes);
  srand(1);
  for (size_t i = 0; i < model.num_parameters; ++i) model.params_memory[i] = 0.02f * ((float)rand() / (float)RAND_MAX - 0.5f);
  int* tokens = malloc(sizeof(int) * (size_t)(batch * length + 1));
  for (int i = 0; i <= batch * length; ++i) tokens[i] = rand() % model.config.vocab_size;
  double* times = malloc(sizeof(double) * (size_t)(steps + 2));
  for (int step = 0; step < steps + 2; ++step) {
    const double begin = seconds();
    gpt2_forward(&model, tokens, tokens + 1, (size_t)batch, (size_t)length);
    gpt2_zero_grad(&model);
    gpt2_backward(&model);
    gpt2_update(&model, 1e-3f, 0.9f, 0.95f, 1e-8f, 0.0f, step + 1);
    times[step] = seconds() - begin;
  }
  qsort(times + 2, (size_t)steps, sizeof(double), by_value);  // the first two warm up
  printf("%f\n", batch * length / times[2 + steps / 2]);
  return 0;
}
