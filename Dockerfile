# One image with broker, provisioner, bundler and ebctl, as in releases. It starts the broker; `docker run IMAGE /usr/local/bin/provisioner` starts the provisioner.
# Only the compiler comes from outside, and nothing of it is in the image. To pin it: `--build-arg GO_IMAGE=golang@sha256:…`.
ARG GO_IMAGE=golang:1.26
FROM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# The folder .git is part of the context, because Go records version and commit from it.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/ ./cmd/broker ./cmd/provisioner ./cmd/bundler ./cmd/ebctl

# The binaries contain CA certificates and time zones, so they need no base image.
FROM scratch
COPY --from=build /out/ /usr/local/bin/
USER 65532:65532
EXPOSE 8080 8071 3000 3001 8443 8081
CMD ["/usr/local/bin/broker"]
