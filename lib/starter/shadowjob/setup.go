// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/reason"
)

// Files that several jobs share ("common files", since HTCondor 25.2) are brought to a
// machine once. A schedd does that by a job of its own, under which no program runs:
//
//  1. For the first job that wants files which are not on the machine, the schedd sends
//     COMMAND_DATA_SLOT for the claim that it has got: the dynamic slot becomes a data
//     slot, with all it has. A shadow (--cxfer=staging) activates that claim with the
//     job's ad, in which IsTransferShadow is true.
//  2. The starter asks for guidance about JobSetup, as described below. For each catalog
//     of files the shadow says StageCommonFiles, then ColorSlot once for all, and then
//     RetryReqest with 300 seconds for ever: the starter stays, and its sandbox with
//     the files, until the claim is released.
//  3. In the answer to ColorSlot the shadow gets SplitClaimId and SlotAd. It offers them
//     to the schedd (DIRECT_ATTACH), which requests the claim: the job's slot is made of
//     what the data slot holds and does not need.
//  4. The starters of the jobs ask about JobSetup, too. Their shadows (--cxfer=mapping)
//     say MapCommonFiles for each catalog and then CarryOn; those of jobs without
//     catalogs say CarryOn at once. After that the job's own input is fetched.
//  5. When no job has wanted the files for KEEP_DATA_CLAIM_IDLE, the schedd releases the
//     claim of the data slot.
//
// A schedd does all this only with a machine whose HasCommonFilesTransfer is 2 or more
// and for a dynamic slot. Else, and when it has failed once, the shared files come with
// each job's own input, and no guidance speaks of them.
//
// The request of JobSetup has HasCommonFilesTransfer = 2 and in ContextAd what became of
// the command before: Command, Result, and
//
//	StageCommonFiles  has Name (of the catalog, unique for access point, machine and
//	                  group of jobs: "A@schedd#12_<hash>=<hash>"), CommonInputFiles,
//	                  TransferSocket and TransferKey, by which they are fetched as input
//	                  is. The answer has StagingDir, and Size in KiB of all that is
//	                  staged here. A failure of the transfer is Result = false alone: the
//	                  shadow knows why. RequestResultCode (1) and RequestResultSubcode
//	                  (an errno) say that there was no transfer, for a cause of this
//	                  machine: the shadow leaves without blaming the files.
//	ColorSlot         has ColorAd.CommonCatalogsAd with CondorVersion (so it is spelled),
//	                  a number, and CommonCatalogsList. 2, to starters of 25.12 and later,
//	                  wants each ad of the list shown as a catalog in the ads of all slots
//	                  (Catalog, CatalogPath, CatalogSize, CatalogScope, CatalogScopeType,
//	                  AccessPoint, CatalogID). 1, to older ones, wants the whole ColorAd
//	                  merged into them. The answer has SplitClaimId and SlotAd.
//	MapCommonFiles    has Name and StagingDir, which is "" if the shadow has not found
//	                  the catalog in the slot's ad: nothing can be mapped then.
//
// HTCondor's starter asks for every job. A shadow has nothing but CarryOn to say to one
// whose ad names no common files, so this one asks for the others alone.

// Commands of JobSetup.
const (
	stageFiles = "StageCommonFiles"
	mapFiles   = "MapCommonFiles"
	colorSlot  = "ColorSlot"
)

// CommonFiles is the version of all this that a starter knows, as HasCommonFilesTransfer
// tells.
const CommonFiles = 2

const (
	// mostSetup bounds the commands about one job that are no wait.
	mostSetup = 1000
	// internalError is the RequestResultCode of what was not even tried.
	internalError = 1
)

// attrCommonFiles are the attributes by which a job names common files.
var attrCommonFiles = [...]string{"CommonInputCatalogs", "CommonInputFiles"}

// sharesFiles reports whether the ad of a job names common files.
func sharesFiles(ad *classad.Ad) bool {
	for _, name := range attrCommonFiles {
		if _, ok := ad.Lookup(name); ok {
			return true
		}
	}
	return false
}

// errAborted is that the shadow wants the job to leave before it has its input.
var errAborted = errors.New("the access point wants the job to be set up elsewhere")

// errDataSlot is that no job is run in a data slot, whatever becomes of its files.
// HTCondor's starter would run the job, and its schedd waits for the slot to be split.
var errDataSlot = errors.New("the files that jobs share were not staged, and no job runs in a data slot")

// setUp does what the shadow commands before input is fetched. The error is the end of
// the job's stay.
func (j *Job) setUp(ctx context.Context) error {
	err := j.obeySetUp(ctx)
	if data, _ := j.place.Job.Ad.EvalBool("IsTransferShadow", nil); data && err == nil {
		return unfit(errDataSlot, reason.StarterError)
	}
	return err
}

// obeySetUp is setUp of any job.
func (j *Job) obeySetUp(ctx context.Context) error {
	if !j.guided() || !sharesFiles(j.place.Job.Ad) {
		return nil
	}
	about := classad.NewAd()
	for done := 0; done < mostSetup; {
		request := classad.NewAd()
		request.SetInt("HasCommonFilesTransfer", CommonFiles)
		request.SetValue("ContextAd", classad.AdValue(about))
		command, ad := j.conv.guidance(ctx, aboutSetup, request)
		if err := ctx.Err(); err != nil {
			return err
		}
		about = classad.NewAd()
		switch command {
		case "":
			return nil
		case "CarryOn":
			j.Log.Info("Carrying on according to guidance...")
			return nil
		case "Abort":
			j.Log.Info("Aborting job as guided...")
			return unfit(errAborted, reason.StarterError)
		case "RetryReqest":
			if before, ok := ad.Eval("ContextAd", nil).AsAd(); ok {
				about = before.Clone()
			}
			if !pauses(ctx, ad) {
				return context.Cause(ctx)
			}
			if n, ok := ad.EvalInt("RetryDelay", nil); ok && n <= 0 {
				done++
			}
			continue
		case stageFiles:
			about = j.stage(ctx, ad)
		case mapFiles:
			about = j.mapCatalog(ctx, ad)
		case colorSlot:
			about = j.showCatalogs(ctx, ad)
		default:
			j.Log.Info(fmt.Sprintf("Guidance '%.100s' unknown, carrying on.", command))
			return nil
		}
		if about == nil {
			j.Log.Info("Guidance was malformed, carrying on.", "command", command)
			return nil
		}
		about.SetString("Command", command)
		done++
	}
	return unfit(errors.New("the shadow has too many commands"), reason.StarterError)
}

// answered is an answer to a command.
func answered(ok bool) *classad.Ad {
	ad := classad.NewAd()
	ad.SetBool("Result", ok)
	return ad
}

// unable is the answer to a command that this machine could not carry out.
func (j *Job) unable(command string, err error) *classad.Ad {
	j.Log.Warn("a command of the shadow cannot be carried out", "command", command, "err", err)
	ad := answered(false)
	subcode := int64(-1)
	if j.Errno != nil {
		if n, _, ok := j.Errno(err); ok {
			subcode = int64(n)
		}
	}
	ad.SetInt("RequestResultCode", internalError)
	ad.SetInt("RequestResultSubcode", subcode)
	return ad
}
