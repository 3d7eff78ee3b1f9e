"""Headless Chromium for the tests of the page."""

import os
import shutil

import pytest


@pytest.fixture(scope="session")
def chromium():
    """Driver of headless Chromium; without it, tests are skipped, but fail in CI."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium: a browser looks at the page")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    binary, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (binary and driver):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("chromium and chromedriver are missing")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options=options, service=service.Service(driver))
    yield browser
    browser.quit()
