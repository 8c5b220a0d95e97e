# The container of a release: the static program, which needs nothing else and uses no GPU, as a user without rights.
# release.sh copies this file beside the programs: docker build --build-arg TARGETARCH=amd64 -t fspda FOLDER/container
FROM scratch
ARG TARGETARCH=amd64
COPY fspda-linux-${TARGETARCH} /fspda
COPY LICENSES.txt /LICENSES.txt
COPY --chown=65532:65532 runs /runs
COPY --chown=65532:65532 runs /tmp
ENV HOME=/runs
WORKDIR /runs
VOLUME /runs
USER 65532:65532
ENTRYPOINT ["/fspda"]
