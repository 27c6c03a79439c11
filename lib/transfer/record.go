// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// note tells who keeps records of a file or directory that came over the
// connection: as HTCondor does, of input alone, and failed from the first failure
// of the transfer on.
func (r *receiver) note(name string, began time.Time, bytes int64) {
	if r.Record == nil {
		return
	}
	ended := time.Now()
	ad := classad.NewAd()
	ad.SetReal("ConnectionTimeSeconds", ended.Sub(began).Seconds())
	ad.SetReal("TransferEndTime", seconds(ended))
	ad.SetInt("TransferFileBytes", bytes)
	ad.SetString("TransferFileName", name)
	ad.SetString("TransferProtocol", "cedar")
	ad.SetReal("TransferStartTime", seconds(began))
	ad.SetBool("TransferSuccess", r.first == nil)
	ad.SetInt("TransferTotalBytes", bytes)
	ad.SetString("TransferType", "download")
	r.Record(ad)
}

func seconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// mostRecord bounds one record of FILE_TRANSFER_STATS_LOG. A plugin, or the job
// that brought it, may report anything.
const mostRecord = 64 << 10

// Record is a file of a job's transfer, as FILE_TRANSFER_STATS_LOG has it: a line
// of three stars, then the attributes in the order of their names. What may be a
// secret in a URL is left out. It is nil if the ad is too large.
func Record(job, file *classad.Ad) []byte {
	ad := file.Clone()
	if url, ok := ad.EvalString("TransferUrl", nil); ok {
		ad.SetString("TransferUrl", safeURL(url))
	}
	ad.SetInt("JobClusterId", int64(number(job, "ClusterId")))
	ad.SetInt("JobProcId", int64(number(job, "ProcId")))
	ad.SetString("JobOwner", text(job, "Owner"))
	names := ad.Names()
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	record := []byte("***\n")
	for _, name := range names {
		value, _ := ad.Lookup(name)
		record = append(record, name+" = "+oneLine(value.Text(classad.Old))+"\n"...)
	}
	if len(record) > mostRecord {
		return nil
	}
	return record
}
