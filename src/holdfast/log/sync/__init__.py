"""The log on blocking connections; users import it from `holdfast.log`."""
