// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// A library with the functions of NVIDIA's management library that the program
// asks, and three devices: an A100 that NVML_MIG=1 splits, an L4, and a T4 that
// cuda.c does not show. NVML_FAIL names a function that fails. With -DOLD it
// has only what drivers had before there was MIG; with -DHOSTILE it lies.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct device { const char *uuid, *name, *pci; int mig, major, minor, mhz, ecc, units; unsigned cores; unsigned long long memory; } device;

#define MIB (1024ULL * 1024)
static device all[] = {
	{"GPU-8aa54555-90e8-79b7-e5f8-e4b2b3e8fcfe", "NVIDIA A100-SXM4-40GB", "0000:10:1C.0", 0, 8, 0, 1410, 1, 0, 6912, 40536 * MIB},
	{"GPU-5d2744da-c329-024c-6477-17d879625691", "NVIDIA L4", "0000:A0:1D.0", 0, 8, 9, 2040, 1, 0, 7424, 23034 * MIB},
	{"GPU-c4a646d7-aa14-1dd1-f1b0-57288cda864d", "Tesla T4", "0000:3B:00.0", 0, 7, 5, 1590, 0, 0, 2560, 15360 * MIB},
};
static device parts[] = {
	{"MIG-207f657b-6f50-5c1a-94f0-01d07ff4cdb0", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "", 1, 0, 0, 0, 0, 42, 0, 20082 * MIB},
	{"MIG-0caf1ce3-fcd4-59da-8564-764000e3ace9", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "", 1, 0, 0, 0, 0, 42, 0, 20086 * MIB},
};

enum { OK, UNINITIALIZED, INVALID, UNSUPPORTED, NOT_FOUND = 6, LOST = 15, UNKNOWN = 999 };

static int fails(const char *what) {
	const char *s = getenv("NVML_FAIL");
	return s != NULL && strstr(s, what) != NULL;
}
static int split(void) { return getenv("NVML_MIG") != NULL; }

static int started;
int nvmlInit_v2(void) {
	if (fails("init")) return 9;
	started = 1;
	return OK;
}
int nvmlShutdown(void) { started = 0; return OK; }
const char *nvmlErrorString(int e) { return e == LOST ? "GPU is lost" : e == 9 ? "Driver Not Loaded" : e == UNSUPPORTED ? "Not Supported" : NULL; }

int nvmlDeviceGetCount_v2(unsigned *n) {
	if (!started) return UNINITIALIZED;
	if (fails("abort")) abort();
	if (fails("killed")) raise(SIGKILL);
	if (fails("flood")) for (int i = 0; i < 200000; i++) puts("a library that prints what it does on stdout");
	if (fails("helper") && fork() == 0) { execlp("sleep", "sleep", "3", NULL); _exit(1); }
	if (fails("count")) return UNKNOWN;
#ifdef HOSTILE
	*n = 0xffffffffu;
#else
	*n = 3;
#endif
	return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **d) {
	if (fails("handle") && i == 1) return LOST;
	*d = &all[i % 3];
	return OK;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, device **d) {
	for (int i = 0; i < 3; i++)
		if (strcmp(all[i].uuid, uuid) == 0) { *d = &all[i]; return OK; }
	return NOT_FOUND;
}
static int copy(char *to, unsigned n, const char *from) {
#ifdef HOSTILE
	memset(to, '"', n); // nowhere an end
	to[1] = '\n';
	return OK;
#endif
	if (strlen(from) >= n) return 7;
	strcpy(to, from);
	return OK;
}
int nvmlDeviceGetUUID(device *d, char *to, unsigned n) { return fails("uuid") ? UNKNOWN : copy(to, n, d->uuid); }
int nvmlDeviceGetName(device *d, char *to, unsigned n) { return fails("name") ? UNKNOWN : copy(to, n, d->name); }
int nvmlDeviceGetMemoryInfo(device *d, unsigned long long m[3]) {
	m[0] = d->memory / 2, m[1] = d->memory, m[2] = d->memory / 2;
	return OK;
}
int nvmlDeviceGetMaxClockInfo(device *d, int clock, unsigned *mhz) {
	if (d->mig || clock != 0) return UNSUPPORTED;
	*mhz = d->mhz;
	return OK;
}
int nvmlDeviceGetEccMode(device *d, int *now, int *then) {
	if (d->mig) return UNSUPPORTED;
	*now = *then = d->ecc;
	return OK;
}
int nvmlDeviceGetFanSpeed(device *d, unsigned *v) {
	if (d != &all[2]) return UNSUPPORTED;
	*v = 35;
	return OK;
}
int nvmlDeviceGetPowerUsage(device *d, unsigned *v) {
	if (d->mig) return UNSUPPORTED;
	*v = 50000 + d->mhz;
	return OK;
}
int nvmlDeviceGetTemperature(device *d, int sensor, unsigned *v) {
	if (d->mig || sensor != 0) return UNSUPPORTED;
	*v = 20 + d->major;
	return OK;
}
int nvmlDeviceGetTotalEccErrors(device *d, int type, int counter, unsigned long long *v) {
	if (!d->ecc || counter != 0) return UNSUPPORTED;
	*v = type == 0 ? 5000000000ULL : 1;
	return OK;
}
int nvmlSystemGetDriverVersion(char *to, unsigned n) { return copy(to, n, "550.54.15"); }
#ifndef OLD
int nvmlSystemGetCudaDriverVersion(int *v) { *v = 12040; return OK; }
int nvmlDeviceGetCudaComputeCapability(device *d, int *major, int *minor) {
	if (d->mig) return INVALID;
	*major = d->major, *minor = d->minor;
	return OK;
}
int nvmlDeviceGetNumGpuCores(device *d, unsigned *n) { *n = d->cores; return OK; }
int nvmlDeviceGetPciInfo_v3(device *d, char *to) {
	if (d->mig) return UNSUPPORTED;
	memset(to, 0, 68);
	return copy(to, 16, d->pci);
}
int nvmlDeviceGetAttributes(device *d, unsigned *to) {
	if (!d->mig) return UNSUPPORTED;
	memset(to, 0, 40);
	to[0] = d->units;
	return OK;
}
int nvmlDeviceGetMaxMigDeviceCount(device *d, unsigned *n) {
	if (d == &all[2]) return UNSUPPORTED; // a kind that cannot be split
	*n = split() && d == &all[0] ? 3 : 0;
#ifdef HOSTILE
	*n = 0xffffffffu;
#endif
	return OK;
}
int nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned i, device **part) {
	if (fails("instance")) return NOT_FOUND;
	if (i == 1) return NOT_FOUND; // a place without an instance
	*part = &parts[i == 0 ? 0 : 1];
	return OK;
}
#endif
