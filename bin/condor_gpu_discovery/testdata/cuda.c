// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with the functions of CUDA's driver library that the program asks,
// and two devices. As the real one it counts only those that
// CUDA_VISIBLE_DEVICES names, here always the second. CUDA_INIT is what cuInit
// returns. With -DOLD it gives no UUIDs.
#include <stdlib.h>
#include <string.h>

static const struct { const char *name, *pci; unsigned char uuid[16]; unsigned long long memory; int attr[77]; } all[] = {
	{"NVIDIA A100-SXM4-40GB", "0000:10:1C.0", {0x8a, 0xa5, 0x45, 0x55, 0x90, 0xe8, 0x79, 0xb7, 0xe5, 0xf8, 0xe4, 0xb2, 0xb3, 0xe8, 0xfc, 0xfe}, 42505273344ULL,
		{[13] = 1410000, [16] = 108, [32] = 1, [33] = 0x10, [34] = 0x1c, [75] = 8, [76] = 0}},
	{"NVIDIA L4", "0000:A0:1D.0", {0x5d, 0x27, 0x44, 0xda, 0xc3, 0x29, 0x02, 0x4c, 0x64, 0x77, 0x17, 0xd8, 0x79, 0x62, 0x56, 0x91}, 23580639232ULL,
		{[13] = 2040000, [16] = 58, [32] = 1, [33] = 0xa0, [34] = 0x1d, [75] = 8, [76] = 9}},
};

static int visible(void) { const char *s = getenv("CUDA_VISIBLE_DEVICES"); return s != NULL && *s != 0; }

int cuInit(unsigned flags) { const char *s = getenv("CUDA_INIT"); return flags != 0 ? 1 : s == NULL ? 0 : atoi(s); }
int cuDriverGetVersion(int *v) { *v = 12040; return 0; }
int cuDeviceGetCount(int *n) { *n = visible() ? 1 : 2; return 0; }
int cuDeviceGet(int *d, int i) { *d = visible() ? 1 : i; return i < 0 || i > 1 ? 101 : 0; }
int cuDeviceGetName(char *to, int n, int d) { strncpy(to, all[d].name, n); return 0; }
int cuDeviceGetPCIBusId(char *to, int n, int d) { strncpy(to, all[d].pci, n); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = all[d].memory; return 0; }
int cuDeviceComputeCapability(int *major, int *minor, int d) { *major = all[d].attr[75], *minor = all[d].attr[76]; return 0; }
int cuDeviceGetAttribute(int *v, int which, int d) {
	if (which < 0 || which > 76) return 1;
	*v = all[d].attr[which];
	return 0;
}
#ifndef OLD
int cuDeviceGetUuid(unsigned char to[16], int d) { memcpy(to, all[d].uuid, 16); return 0; }
#endif
