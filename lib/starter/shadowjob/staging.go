// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/transfer"
)

// stage brings the files of a catalog into a staging directory. nil is that the command
// cannot be understood.
func (j *Job) stage(ctx context.Context, ad *classad.Ad) *classad.Ad {
	name, named := ad.EvalString("Name", nil)
	_, listed := ad.EvalString("CommonInputFiles", nil)
	where := fileServer{session: j.mover.server().session, version: j.mover.server().version}
	if err := where.learn(ad); err != nil || !named || !listed || where.key == "" || where.address.IsZero() {
		return nil
	}
	if j.Plan.Settings.Pool.Mapping == "" {
		return j.unable(stageFiles, errNoMapping)
	}
	root, path, err := j.place.Box.Stage(name)
	if err != nil {
		return j.unable(stageFiles, err)
	}
	defer func() { _ = root.Close() }()
	j.Log.Info("Starting common files transfer.", "catalog", name)
	if err = j.mover.fetchCommon(ctx, where, root, path); err != nil {
		j.Log.Info("Finished common files transfer: failure.", "catalog", name, "err", err)
		return answered(false)
	}
	j.Log.Info("Finished common files transfer: success.", "catalog", name)
	if err := j.place.Box.Seal(name); err != nil {
		return j.unable(stageFiles, err)
	}
	about := answered(true)
	about.SetString("StagingDir", path)
	about.SetInt("Size", j.told("staging"))
	return about
}

// told measures the sandbox in KiB, tells the startd, and writes it where HTCondor's
// tests look for it.
func (j *Job) told(doing string) int64 {
	kib := j.place.Box.Usage().KiB
	j.Log.Info(fmt.Sprintf("cxfer: sizeOnDisk (%s) = %d (KiB)", doing, kib), slog.String("cat", "D_TEST"))
	if doing == "staging" {
		j.Report(protocol.Usage{DiskKiB: kib})
	}
	return kib
}

// fetchCommon brings files into a staging directory. The shadow moves them in a child,
// and knows how that ended when the child is gone.
func (m *mover) fetchCommon(ctx context.Context, where fileServer, root *os.Root, path string) error {
	conn, err := m.openAt(ctx, where, command.FiletransUpload)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	o := transfer.ReceiveOptions{Plugins: m.plugins(), Owner: m.owner()}
	o.Plugins.Scratch = path
	if err := m.place.WriteAds(); err != nil { // for plugins
		m.conv.log.Info("plugins find no ad of the job", "err", err)
	}
	var got transfer.Stats
	err = m.place.AsUser(func() (err error) {
		got, err = transfer.Receive(ctx, m.side(conn), root, o)
		return err
	})
	drainToEOF(ctx, conn)
	if len(got.PluginResults) > 0 {
		if rerr := m.conv.caller.RegisterJob(ctx, pluginResults("Common", got.PluginResults)); err == nil {
			err = rerr
		}
	}
	return err
}

// errNoMapping is that common files are not offered; a schedd that asks for them all
// the same has an old ad of the machine.
var errNoMapping = errors.New("this machine shares no files between jobs: see FORBID_HARDLINK_MAPPING, FORBID_COPY_MAPPING and STARTD_ENFORCE_DISK_LIMITS")

// mapCatalog puts the files of a catalog into the job's scratch directory. nil is that
// the command cannot be understood.
func (j *Job) mapCatalog(ctx context.Context, ad *classad.Ad) *classad.Ad {
	name, named := ad.EvalString("Name", nil)
	path, located := ad.EvalString("StagingDir", nil)
	if !named || !located {
		return nil
	}
	j.Log.Info("Mapping common files into job's initial working directory...", "catalog", name, "from", path)
	how := j.Plan.Settings.Pool.Mapping
	err := errNoMapping
	var linked, copied int
	if how != "" {
		linked, copied, err = j.place.Box.Map(ctx, path, how == protocol.MapCopy)
	}
	if err != nil {
		j.Log.Warn("the files of a catalog cannot be mapped", "catalog", name, "from", path, "err", err)
	} else {
		j.Log.Info("Common files are mapped.", "catalog", name, "linked", linked, "copied", copied)
	}
	j.told("mapping")
	return answered(err == nil)
}

// mostCatalogs bounds the catalogs of one data slot, mostOfCatalog the ad of one.
const (
	mostCatalogs  = 256
	mostOfCatalog = 16 << 10
)

// showCatalogs has the slots of the machine show what is staged, and gives the shadow
// what other slots can be made with. nil is that the command cannot be understood.
func (j *Job) showCatalogs(ctx context.Context, ad *classad.Ad) *classad.Ad {
	catalogs, ok := catalogsOf(ad)
	if !ok {
		return nil
	}
	err := j.announce(ctx, catalogs)
	split := j.Plan.Shadow.Split
	if err == nil && split == "" {
		err = errors.New("the slot of this starter cannot be split")
	}
	if err != nil {
		j.Log.Warn("The startd failed to announce the catalogs.", "err", err)
	}
	about := answered(err == nil)
	about.SetString("SplitClaimId", split.Reveal())
	about.SetValue("SlotAd", classad.AdValue(j.machine))
	return about
}

// announce announces catalogs one after the other, and ends with the first failure.
func (j *Job) announce(ctx context.Context, catalogs []*classad.Ad) (err error) {
	for _, c := range catalogs {
		text := c.Text(classad.Old)
		if len(text) > mostOfCatalog {
			return fmt.Errorf("the ad of a catalog has %d bytes, %d are the most", len(text), mostOfCatalog)
		}
		job.Apart(func() { err = j.Announce(ctx, text) })
		if err != nil {
			return err
		}
	}
	return nil
}

// catalogsOf reads the command that shows catalogs. Version 1 is for starters before
// 25.12, which shadows take this one for none of.
func catalogsOf(ad *classad.Ad) ([]*classad.Ad, bool) {
	color, ok := ad.Eval("ColorAd", nil).AsAd()
	if !ok {
		return nil, false
	}
	common, ok := color.Eval("CommonCatalogsAd", nil).AsAd()
	if !ok {
		return nil, false
	}
	if n, ok := common.EvalInt("CondorVersion", nil); !ok || n != 2 {
		return nil, false
	}
	list, ok := common.Eval("CommonCatalogsList", nil).AsList()
	if !ok || len(list) > mostCatalogs {
		return nil, false
	}
	var catalogs []*classad.Ad
	for _, e := range list {
		c, ok := e.Eval(&classad.Env{My: common}).AsAd()
		if !ok {
			return nil, false
		}
		catalogs = append(catalogs, c)
	}
	return catalogs, true
}
