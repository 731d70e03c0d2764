# One image with every binary. The default is the broker: `docker run … /usr/local/bin/provisioner` runs another.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o /out/ ./cmd/...

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/ /usr/local/bin/
USER nonroot
EXPOSE 8080 8071 3000 3001
ENTRYPOINT []
CMD ["/usr/local/bin/broker"]
