// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// SlotColored brings what a starter lays over the ads of all slots, in place of what it
// laid over them before. It is shown until the claim ends.
type SlotColored struct {
	Activation claim.ActivationID
	Ad         *classad.Ad
}

// CatalogAnnounced brings a catalog of files that jobs of this machine may share. It is
// shown in the ads of all slots, beside those before it, until the claim ends.
// CatalogAnswered is the answer.
type CatalogAnnounced struct {
	Activation claim.ActivationID
	Ad         *classad.Ad
}

// CatalogAnswered answers a CatalogAnnounced: the ads of the slots show the catalog, or
// Err says why they do not.
type CatalogAnswered struct {
	Activation claim.ActivationID
	Err        error
}

// ColorRefused says that the color of a slot is not shown.
type ColorRefused struct {
	Slot slot.ID
	Name string
	Err  error
}

func (SlotColored) event()      {}
func (CatalogAnnounced) event() {}
func (CatalogAnswered) effect() {}
func (ColorRefused) effect()    {}

// Sources of what starters publish, as HTCondor names its ads of them (Machine.Extra).
// That of a claim has the public part of its id behind a dot.
const (
	coloring    = "#coloring"
	cataloging  = "#catalog"
	catalogList = cataloging + ".catalog_list_ad"
)

// mostShown bounds what starters have all slots show, in bytes of text: every slot's ad
// has all of it.
const mostShown = 256 << 10

// shownAds is what starters have all slots show.
type shownAds struct {
	size     int
	numbered int      // the catalogs that there have been
	catalogs []string // the names of those that there are, catalog_1 …
}

// claimColors is what the slots show for one claim.
type claimColors struct {
	size     int // of all of it
	color    int // of the color
	catalogs []string
	ads      *classad.Ad // the catalogs by their names
}

// sourceOf names what is published for a claim. A dot has a meaning in such names.
func sourceOf(space string, id claim.ID) string {
	return space + "." + strings.ReplaceAll(id.String(), ".", "_")
}

// room says why so much more text is not shown, nil if it is.
func (s *shownAds) room(size int) error {
	if s.size+size > mostShown {
		return errs.E("ep.Show", errs.Exhausted, "", fmt.Errorf("the slots show %d bytes of starters already, and %d more are beyond %d", s.size, size, mostShown))
	}
	return nil
}

// slotColored shows the color of a slot as colors_of_<slot>, so that those of several
// do not collide. The constraint stands in it for who reads it: it is not heeded, and
// all slots show all colors, as with HTCondor.
func (e *Engine) slotColored(ev SlotColored) {
	sl, ok := e.running(ev.Activation)
	if !ok || sl.cur == nil || ev.Ad == nil {
		return
	}
	size := len(ev.Ad.Text(classad.Old))
	if err := e.slots.shown.room(size - sl.colors.color); err != nil {
		e.emit(ColorRefused{Slot: sl.s.ID, Name: sl.name, Err: err})
		return
	}
	color := ev.Ad.Clone()
	if err := color.SetText("SlotMergeConstraint", fmt.Sprintf("SlotID == %d", sl.s.ID.N)); err != nil {
		panic(err) // an expression of a number
	}
	all := classad.NewAd()
	all.SetValue("colors_of_"+sl.name, classad.AdValue(color))
	e.publish(Published{Source: sourceOf(coloring, sl.cur.ID), Attrs: all})
	e.slots.shown.size += size - sl.colors.color
	sl.colors.size += size - sl.colors.color
	sl.colors.color = size
}

func (e *Engine) catalogAnnounced(ev CatalogAnnounced) {
	e.emit(CatalogAnswered{Activation: ev.Activation, Err: e.showCatalog(ev)})
}

// showCatalog shows a catalog under a name that none had before, and that name in the
// list of all.
func (e *Engine) showCatalog(ev CatalogAnnounced) error {
	const op = "ep.Catalog"
	sl, ok := e.running(ev.Activation)
	switch {
	case !ok || sl.cur == nil:
		return errs.E(op, errs.NotFound, string(ev.Activation), errors.New("its claim has ended"))
	case ev.Ad == nil:
		return errs.E(op, errs.Invalid, sl.name, errors.New("the catalog has no ad"))
	}
	size := len(ev.Ad.Text(classad.Old))
	if err := e.slots.shown.room(size); err != nil {
		return err
	}
	e.slots.shown.numbered++
	name := fmt.Sprintf("catalog_%d", e.slots.shown.numbered)
	catalog := ev.Ad.Clone()
	catalog.SetString("id", name)
	if sl.colors.ads == nil {
		sl.colors.ads = classad.NewAd()
	}
	sl.colors.ads.SetValue(name, classad.AdValue(catalog))
	sl.colors.catalogs = append(sl.colors.catalogs, name)
	sl.colors.size += size
	e.slots.shown.size += size
	e.slots.shown.catalogs = append(e.slots.shown.catalogs, name)
	e.publish(Published{Source: sourceOf(cataloging, sl.cur.ID), Attrs: sl.colors.ads.Clone()})
	e.listCatalogs()
	return nil
}

// listCatalogs shows the catalogs that there are as a list, each by its name.
func (e *Engine) listCatalogs() {
	all := make([]*classad.Expr, 0, len(e.slots.shown.catalogs))
	for _, name := range e.slots.shown.catalogs {
		all = append(all, classad.MustParseExpr(name))
	}
	list := classad.NewAd()
	list.SetValue("catalogs", classad.List(all...))
	e.publish(Published{Source: catalogList, Attrs: list})
}

// fade takes away what the slots show for the claim of a slot.
func (e *Engine) fade(sl *slotState) {
	had := sl.colors
	sl.colors = claimColors{}
	e.slots.shown.size -= had.size
	if had.color > 0 {
		e.publish(Published{Source: sourceOf(coloring, sl.cur.ID)})
	}
	if len(had.catalogs) == 0 {
		return
	}
	e.publish(Published{Source: sourceOf(cataloging, sl.cur.ID)})
	e.slots.shown.catalogs = slices.DeleteFunc(e.slots.shown.catalogs, func(name string) bool { return slices.Contains(had.catalogs, name) })
	e.listCatalogs()
}
