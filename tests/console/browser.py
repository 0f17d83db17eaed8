"""A real Chromium, without a screen, that asks nobody but the console."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.cli.harness import LONG

CHROMIUM = "/usr/bin/chromium"
DRIVER = "/usr/bin/chromedriver"
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,1000"),
)


class Browser:
    """What a person does, and sees."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        self.driver.get("about:blank")  # a change of the part after # alone loads nothing
        self.complaints()  # of the page before, whose console has gone
        self.driver.get(address)

    def find(self, selector: str) -> WebElement:
        """The element, as soon as it is there and shown."""

        def look(driver: webdriver.Chrome) -> WebElement | None:
            return next((each for each in driver.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()), None)

        found: WebElement = self._wait(look, f"no {selector}")
        return found

    def all(self, selector: str) -> list[str]:
        """The texts of all that fit."""
        words = "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)"
        texts: list[str] = self.run(words, selector)
        return texts

    def text(self, selector: str) -> str:
        return "\n".join(self.all(selector))

    def until(self, truth: Callable[[], object], what: str) -> None:
        self._wait(lambda _: truth(), what)

    def shows(self, selector: str, words: str) -> None:
        """Wait for words."""
        self.until(lambda: words in self.text(selector), f"{words!r} never came to {selector}: {self.text(selector)!r}")

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        self.find(selector).click()

    def complaints(self) -> list[str]:
        """What the browser has to say: errors of scripts, and what the policy has kept from happening."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "DEBUG"]  # type: ignore[no-untyped-call]

    def emulate(self, width: int, dark: bool = False) -> None:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def _wait(self, look: Callable[[Any], Any], what: str) -> Any:
        return WebDriverWait(self.driver, LONG, poll_frequency=0.05).until(look, what)


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for switch in (*SWITCHES, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(switch)  # type: ignore[no-untyped-call, unused-ignore]
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
