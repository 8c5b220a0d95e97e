package data

import "fmt"

// Histogram counts the classes of each shard: element [i][c] is the number of examples of class c
// that agent i holds. It panics if a shard contains an example without label, or a label is not in
// [0,classes).
func Histogram(labels []int32, classes int, shards [][]int32) [][]int {
	counts := make([][]int, len(shards))
	for agent, shard := range shards {
		counts[agent] = make([]int, classes)
		for _, e := range shard {
			if e < 0 || int(e) >= len(labels) || labels[e] < 0 || int(labels[e]) >= classes {
				panic(fmt.Sprintf("data: histogram of agent %d: example %d of %d", agent, e, len(labels)))
			}
			counts[agent][labels[e]]++
		}
	}
	return counts
}

// Skew measures the heterogeneity of the shards of a Histogram: the mean over agents of the share
// of an agent's most frequent class. It is near 1/classes if all agents hold the same mix, and 1 if
// each holds one class. Agents without examples do not count.
func Skew(counts [][]int) float64 {
	sum, agents := 0.0, 0
	for _, row := range counts {
		total, most := 0, 0
		for _, n := range row {
			total += n
			most = max(most, n)
		}
		if total > 0 {
			sum += float64(most) / float64(total)
			agents++
		}
	}
	if agents == 0 {
		return 0
	}
	return sum / float64(agents)
}
