// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// usage is what -help prints.
const usage = `Usage: condor_gpu_discovery [options]
Prints the GPUs of this machine as the startd reads them.

What is printed
    -properties            the properties that jobs are matched by
    -extra                 more properties: clock, units, cores
    -dynamic               what changes while a device works: temperature, power, fan, memory errors
    -mixed                 every property with its device, none as common to all
    -nested                one ClassAd per device (default)
    -not-nested            attributes with the device or a prefix before their names
    -prefix <string>       prefix of -not-nested and -by-index: CUDA, GPU (HIP) or OCL
    -tag <string>          name of the resource in Detected<tag>, GPUs
    -config                the syntax of configuration files, and NUM_DETECTED_<tag>
    -cron                  without the list of devices, for STARTD_CRON
Names of devices
    -short-uuid            the first 8 digits of the UUID (default)
    -uuid                  the whole UUID
    -by-index              the number
Which devices
    -device <list>         only these numbers, or names that begin so; may be given again
    -cuda, -hip, -opencl   only these libraries; otherwise the first of them that shows a device
    -nvcuda, -cudart       CUDA's driver library only, or its run-time library only
    -dirty-environment     leave CUDA_VISIBLE_DEVICES and the like to the libraries
    -fix-hip-guid <hex>    the model number that completes UUIDs of AMD's devices
    -simulate[:D[,N[,D2,N2...]]]
                           N devices of kind D, without asking a library
        0  GeForce GT 330                    4  A100-SXM4-40GB
        1  GeForce GTX 480                   5  A100-SXM4-40GB, MIG 3g.20gb, old names
        2  Tesla V100-PCIE-16GB              6  A100-SXM4-40GB, MIG 1g.5gb
        3  TITAN RTX                         7  A100-SXM4-40GB, MIG 3g.20gb
        8  one of each
How often
    -repeat [<N>]          every device N (2) times
    -divide [<N>]          so too, with an Nth of GlobalMemoryMb each
    -packed                the same devices next to each other
Finding out what is wrong
    -verbose               name the devices that were found
    -diagnostic            tell every step
    -help                  this text
Options may be shortened. The exit status is 0, also where no device is found
(Detected<tag>=0), and 1 for a wrong option or a driver that cannot say which
devices there are.
`
