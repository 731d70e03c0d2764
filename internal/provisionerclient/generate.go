package provisionerclient

//go:generate go tool genqlient genqlient.yaml
