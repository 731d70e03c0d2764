package director

//go:generate go tool genqlient genqlient.yaml
