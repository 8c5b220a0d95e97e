package algo

// Methods lists the methods of this package, in the order of the table of methods.
func Methods() []Method {
	return []Method{
		fspdaSA, fspdaSTORM, dsgd, dmsgd, qgDSGDm, decentLaM, dsgt, gtDSGDm, momentumTracking, adamTracking, sgp,
		relaySGD, powerGossip, fspdaSASketch, fspdaSAEF, edm, exactDiffusion, d2, scaffnew, led, kgt, diging, extra,
		proxGPDA, next, beer, choco, ticopd, docom, swarm, fspdaAsync, fspdaAsyncSTORM, localSGD, desLoc, diloco,
		muloco, sparseLoCo, noloco, gasloc, sparta, spartaDiLoCo, streamingDiLoCo, demo, sgd,
	}
}
