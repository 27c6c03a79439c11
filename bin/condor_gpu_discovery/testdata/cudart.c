// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with the functions of CUDA's run-time library that the program
// asks, and one device. CUDART_VERSION is its version, 12040 if not set.
#include <stdlib.h>
#include <string.h>

int cudaGetDeviceCount(int *n) { *n = 1; return 0; }
int cudaRuntimeGetVersion(int *v) { const char *s = getenv("CUDART_VERSION"); *v = s ? atoi(s) : 12040; return 0; }
int cudaDriverGetVersion(int *v) { *v = 12040; return 0; }

// The first fields of the structure, which differ before version 10, and the
// ones that the original tool reads.
int cudaGetDeviceProperties(char *p, int d) {
	int v;
	cudaRuntimeGetVersion(&v);
	strcpy(p, "NVIDIA L4");
	int at = 256;
	if (v >= 10000) {
		memcpy(p + 256, "\x5d\x27\x44\xda\xc3\x29\x02\x4c\x64\x77\x17\xd8\x79\x62\x56\x91", 16);
		at = 288;
	}
	*(unsigned long long *)(p + at) = 23580639232ULL;
	*(int *)(p + at + 60) = 2040000;
	*(int *)(p + at + 72) = 8;
	*(int *)(p + at + 76) = 9;
	*(int *)(p + at + 100) = 58;
	*(int *)(p + at + 292) = 1;
	*(int *)(p + at + 296) = 0xa0;
	*(int *)(p + at + 300) = 0x1d;
	*(int *)(p + at + 304) = 0;
	return d != 0 ? 101 : 0;
}
int cudaDeviceGetAttribute(int *v, int which, int d) {
	switch (which) {
	case 13: *v = 2040000; return 0;
	case 16: *v = 58; return 0;
	case 32: *v = 1; return 0;
	case 33: *v = 0xa0; return 0;
	case 34: *v = 0x1d; return 0;
	case 50: *v = 0; return 0;
	case 75: *v = 8; return 0;
	case 76: *v = 9; return 0;
	}
	return 1;
}
