//go:build race

package world

const defaultSeeds = 100
