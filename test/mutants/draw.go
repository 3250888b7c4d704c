package main

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
)

// The sample is drawn in three steps, all of them decided by the seed.
//
//  1. Each protocol package gets its 50 of 1,000 (of n, as many in proportion, at least one), or
//    all if it has fewer.
//  2. What is left goes to all packages in proportion to the mutants that they have left.
//  3. Within a package the operators take turns, each with its mutants in random order, until the
//    package has its share. What does not compile is passed over, and so is what changes nothing:
//    the next one of the operator takes its turn.

// least is what a protocol package gets of a sample of 1,000.
const least = 50

// sampleShares returns how many mutants each package gets, by how many it has.
func sampleShares(s *scope, has map[string]int, n int) map[string]int {
	share := make(map[string]int)
	rest := n
	for _, p := range s.packages {
		if s.protocol[p] {
			share[p] = min(has[p], max(1, least*n/1000), rest)
			rest -= share[p]
		}
	}
	left := 0
	for _, p := range s.packages {
		left += has[p] - share[p]
	}
	rest = min(rest, left)
	// The largest remainders get one more.
	type part struct {
		pkg       string
		remainder int
	}
	var parts []part
	given := 0
	for _, p := range s.packages {
		if left == 0 {
			break
		}
		more := rest * (has[p] - share[p])
		parts = append(parts, part{p, more % left})
		share[p] += more / left
		given += more / left
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.remainder, a.remainder) })
	for i := range rest - given {
		share[parts[i].pkg]++
	}
	return share
}

// drawOrder puts the mutants of a package in the order in which they are drawn.
func drawOrder(list []*mutant, seed string) []*mutant {
	var operators []string
	of := make(map[string][]*mutant)
	for _, m := range list {
		if of[m.operator] == nil {
			operators = append(operators, m.operator)
		}
		of[m.operator] = append(of[m.operator], m)
	}
	slices.Sort(operators)
	for _, o := range operators {
		h := fnv.New64a()
		h.Write([]byte(seed + " " + list[0].pkg + " " + o))
		r := rand.New(rand.NewPCG(h.Sum64(), 0))
		r.Shuffle(len(of[o]), func(i, j int) { of[o][i], of[o][j] = of[o][j], of[o][i] })
	}
	var drawn []*mutant
	for i := 0; len(drawn) < len(list); i++ {
		for _, o := range operators {
			if i < len(of[o]) {
				drawn = append(drawn, of[o][i])
			}
		}
	}
	return drawn
}

// allMutants is all mutants of the packages, by package, in the order of the text.
func allMutants(s *scope, list []*typedPackage) (plain, race map[string][]*mutant) {
	plain, race = make(map[string][]*mutant), make(map[string][]*mutant)
	for _, p := range list {
		var all []*mutant
		for i, name := range p.names {
			if !s.skip[name] {
				all = append(all, p.mutantsOf(s, i)...)
			}
		}
		setIDs(all)
		for _, m := range all {
			if m.race {
				race[p.path] = append(race[p.path], m)
			} else {
				plain[p.path] = append(plain[p.path], m)
			}
		}
	}
	return plain, race
}

// drawSample takes a sample. Those that do not compile are found by weaving them in.
func drawSample(s *scope, list []*typedPackage, all map[string][]*mutant, n int, seed string) (sample []*mutant,
	err error) {
	has := make(map[string]int)
	for p, l := range all {
		has[p] = len(l)
	}
	share := sampleShares(s, has, n)
	for _, p := range list {
		if share[p.path] == 0 {
			continue
		}
		drawn := drawOrder(all[p.path], seed)
		var good []*mutant
		for len(good) < share[p.path] && len(drawn) > 0 {
			k := min(len(drawn), share[p.path]-len(good))
			compiled, err := p.compilable(drawn[:k])
			if err != nil {
				return nil, err
			}
			good, drawn = append(good, compiled...), drawn[k:]
		}
		sample = append(sample, good...)
	}
	return sample, nil
}

// compilable returns those mutants that a compiler takes.
func (p *typedPackage) compilable(list []*mutant) (good []*mutant, err error) {
	for i, m := range list {
		m.number = i + 1
	}
	texts, err := p.graftMutants(list)
	if err != nil {
		return nil, err
	}
	wrong := make(map[string]bool)
	if err := p.checkTypes(texts, wrong); err != nil {
		return nil, err
	}
	numbers := make(map[string]bool)
	for name := range wrong {
		numbers[name[strings.LastIndex(name, "_fault"):]] = true
	}
	for _, m := range list {
		if !numbers[m.functionSuffix()] {
			good = append(good, m)
		}
	}
	return good, nil
}
