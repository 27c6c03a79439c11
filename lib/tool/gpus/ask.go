// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpus

import "github.com/execpoint/execpoint/lib/gpu"

// Wanted says what to ask NVIDIA's libraries.
type Wanted struct {
	Driver, Runtime bool // of CUDA's two libraries only that one
	Dynamic         bool // what changes while a device works, too
}

// Libraries are those of the drivers of a machine.
type Libraries interface {
	// NVIDIA asks NVML and CUDA. No library is no device; the error is about one that
	// is there and cannot say which devices there are.
	NVIDIA(Wanted) (gpu.Found, error)

	// HIP asks AMD's library; loaded says that it is there. fix is the model number
	// that completes the UUIDs of AMD's devices, 0 to leave them as they are.
	HIP(fix uint16) (devices []gpu.Device, loaded bool)

	// OpenCL asks the OpenCL of every vendor.
	OpenCL() []gpu.Device
}

// Choice says which libraries are asked; those of a zero Choice in their usual order.
type Choice struct {
	CUDA, HIP, OpenCL bool // these and no others

	NVIDIA  Wanted
	FixGUID uint16 // for Libraries.HIP
}

// Ask asks the libraries in turn: NVIDIA's, HIP where those show nothing, OpenCL where
// neither does; or the ones that are chosen. hip says that HIP was there to answer. The
// error is that of NVIDIA's libraries, which are there and cannot say what there is.
func Ask(libs Libraries, c Choice) (found gpu.Found, hip bool, err error) {
	one := c.CUDA || c.HIP || c.OpenCL
	onlyCUDA := c.CUDA && !c.HIP && !c.OpenCL
	if !one || c.CUDA {
		if found, err = libs.NVIDIA(c.NVIDIA); err != nil {
			return found, false, err
		}
		onlyCUDA = onlyCUDA || len(found.Devices) > 0 && !c.HIP
	}
	if !onlyCUDA && (c.HIP || len(found.Devices) == 0 && !c.OpenCL) {
		var devices []gpu.Device
		if devices, hip = libs.HIP(c.FixGUID); hip {
			found.Prefix = "GPU"
			found.Devices = append(found.Devices, devices...)
		}
	}
	if !onlyCUDA && len(found.Devices) == 0 && (c.OpenCL || !c.HIP) {
		found.Prefix, found.Devices = "OCL", libs.OpenCL()
	}
	return found, hip, nil
}
