// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with the functions of HIP that the program asks, and two devices:
// one with a UUID, and one with sixteen digits in its place, as ROCm 6 has.
#include <stdlib.h>
#include <string.h>

int hipGetDeviceCount(int *n) { *n = 2; return 0; }
int hipDriverGetVersion(int *v) { *v = 60342131; return 0; }
int hipGetDevicePropertiesR0600(char *p, int d) {
	memset(p, 0, 1472);
	strcpy(p, "AMD Instinct MI300A");
	memcpy(p + 256, d == 0 ? "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef" : "b0c0cb9338716a18", 16);
	*(unsigned long long *)(p + 288) = 137438953472ULL;
	*(int *)(p + 308) = 64;
	*(int *)(p + 348) = 2100000;
	*(int *)(p + 360) = 9;
	*(int *)(p + 364) = 4;
	*(int *)(p + 388) = 228;
	*(int *)(p + 580) = 1;
	*(int *)(p + 584) = 2;
	*(int *)(p + 592) = d;
	*(int *)(p + 604) = 1;
	return 0;
}
